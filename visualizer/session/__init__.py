"""What lasts from one run of the script to the next: the state, the caches, the jobs."""
