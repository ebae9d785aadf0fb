"""The event plane: what chains did, told to others in order, without gaps, to each whom it concerns, once."""
