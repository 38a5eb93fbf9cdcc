// The npm package "iovalkey". Usage: node iovalkey.js PORT pool|store. Ends with status 0 when every answer was right.
'use strict';

require('./io_client').run(require('iovalkey').Redis);
