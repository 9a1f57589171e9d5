"""From a kernel and a size to the best map of that size, with a certificate.

===============  ==========================================================================
module           what it holds
===============  ==========================================================================
problem          signature, weight, domain: what is approximated and how the error counts
lp               frequency pools and the paper's two linear programs
level            Gauss start and levelling: the best map of a smooth signature, directly
slp, pnorm       Taylor linear programs with a trust region; cheap scouts
refine           the best cosine map, whatever the signature
===============  ==========================================================================
"""
