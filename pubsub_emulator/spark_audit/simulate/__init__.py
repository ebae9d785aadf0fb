"""Large histories, made to be audited: many generated networks with cheats sprinkled in and the truth beside them.

population.py   one network: who publishes what, who reads it, who cheats, all of it drawn from a seed and a number
unit.py         one network from its first block to its last commit: a unit of work for either engine
run.py          all networks of a simulation, those that are there already left alone
score.py        an audit's findings compared with the truth
"""
