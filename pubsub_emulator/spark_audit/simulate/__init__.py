"""Large histories, made to be audited: many generated networks with cheats sprinkled in and the truth beside them."""
