"""The parts that commands are made of: options, extras, results, output and what a run comes to."""
