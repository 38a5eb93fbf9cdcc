// The npm package "ioredis". Usage: node ioredis.js PORT pool|store. Ends with status 0 when every answer was right.
'use strict';

require('./io_client').run(require('ioredis').Redis);
