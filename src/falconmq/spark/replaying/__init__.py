"""Archived messages, sent again: which (`choosing`, `predicates`), in what pieces (`plans`), how
fast (`pacing`). The job is `falconmq.spark.jobs.replay`.
"""
