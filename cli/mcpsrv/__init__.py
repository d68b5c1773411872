"""`mcpsrv`, the command line for people: import, try, call, watch and explain MCPServers."""
