"""Facts read off a job, without running it any longer than its measurement does."""
