"""The methods of a node: functions of a chain, parameters and a caller, without sockets, files or clocks."""
