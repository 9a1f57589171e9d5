"""Solvers: functions of sums or rows that estimators call; none of them knows an estimator."""
