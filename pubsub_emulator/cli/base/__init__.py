"""The parts that commands share: options, extras, results, output and exit handling."""
