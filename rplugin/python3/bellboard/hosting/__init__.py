"""What a host does: fold, publish, ring, run errands."""
