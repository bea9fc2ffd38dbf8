"""What lies on the disk: the spool, and the database that all hosts share."""
