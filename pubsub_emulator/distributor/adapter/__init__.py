"""An adapter: the HTTP interface of a distributor over the log of one network (ID-1, ID-2)."""
