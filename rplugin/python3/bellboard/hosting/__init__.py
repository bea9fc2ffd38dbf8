"""The host: fold, publish, notify, and carry out requests."""
