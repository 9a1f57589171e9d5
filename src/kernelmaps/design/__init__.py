"""Design of the best map for a kernel and a size, with a certificate.

====================  ===========================================================================
module                what it holds
====================  ===========================================================================
problem, gram         what is approximated, where, and how the error counts: on lags, on values
lp                    frequency pools and the paper's two linear programs
remez                 the best map of a smooth signature, directly: interpolation, then levelling
slp, pnorm            Taylor linear programs with a trust region; cheap scouts
refine                the best cosine map, whatever the signature
tables, sine          rank-D tables (eigen, minimax); the intersection kernel's closed form
bounds, certify*      what no map can beat; what is proved about a design
multidim, joint*      two and three dimensions: ``joint_target`` (what is approximated),
                      ``joint_pools`` (selection), ``joint_descent`` (frequencies that move)
anchors, square_root  where the anchors of a feature lie; square roots of their kernel
random_features       sizes that the theorems on random features ask for; ``sparsity`` of data
api, result, cache    ``design_map``; ``Design``; designs on disk; ``solvers``: all methods
search                the largest error of a map, by attack: tests its certificate
====================  ===========================================================================
"""
