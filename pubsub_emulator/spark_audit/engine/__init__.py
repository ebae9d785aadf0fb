"""Units of work, and the engines that run them: this process, a pool of processes."""
