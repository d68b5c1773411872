"""What the commands decide, over plain data: no cluster, no terminal, no clock."""
