"""Replicas of a message queuing directory, compared: `exports` reads them, `comparing` and
`converging` say what follows. The job is `falconmq.spark.jobs.directory`.
"""
