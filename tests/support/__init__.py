"""What the system tests are made of: processes, sockets, fake servers."""
