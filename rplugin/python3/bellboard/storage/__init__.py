"""Files on disk: the spool, and the database that all hosts share."""
