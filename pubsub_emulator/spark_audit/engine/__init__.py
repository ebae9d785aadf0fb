"""Units of work, what each rests on, and the engines that run them."""
