"""Design of the best map for a kernel and a size, with a certificate.

===================  ==========================================================================
module               what it holds
===================  ==========================================================================
problem, gram        what is approximated, where, and how the error counts: on lags, on values
lp                   frequency pools and the paper's two linear programs
level                Gauss start and levelling: the best map of a smooth signature, directly
slp, pnorm           Taylor linear programs with a trust region; cheap scouts
refine               the best cosine map, whatever the signature
tables, sine         rank-D tables (eigen, minimax); the intersection kernel's closed form
bounds, certify      what no map can beat; what is proved about a design
multidim             two and three dimensions: projections and modulations
cache, api, result   designs on disk; ``design_map``; ``Design``
===================  ==========================================================================
"""
