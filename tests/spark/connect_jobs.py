"""A Spark Connect server and a client of it, in processes of their own: `python -m tests.spark.connect_jobs NAME`.

The server is a session of ours with Spark's plugin; it prints its port and stays until its standard input ends.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import skytide as sk
from skytide.spark import local_session, plain_errors, register, remote_session, skyline
from skytide.spark.batch_strong import filtered
from tests.spark.jobs import points
from tests.spark.small import PLAIN_JAVA
from tests.spark.streaming.contract import Case, run


def server() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spark = local_session(
        "local[2]",
        **{
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": PLAIN_JAVA,
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": port,
        },
    )
    print(json.dumps({"port": port, "java": os.environ["JAVA_HOME"]}), flush=True)
    sys.stdin.read()
    spark.stop()


def client(url: str) -> dict[str, Any]:
    spark = remote_session(url, **{"spark.sql.shuffle.partitions": 3})
    wide = spark.range(30).selectExpr("id", "-id AS a", "make_interval(1, 2) AS span")
    found: dict[str, Any] = {
        "client": type(spark).__module__,
        "partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "skyline": points(spark, 3),
        "joined": [row.id for row in skyline(wide, sk.Preference(minimize=["a"]), carry=False).select("id").collect()],
    }
    rows = spark.range(3000, numPartitions=3).selectExpr("id", "id % 50 AS a", "49 - id % 50 AS b", "id % 4 AS g")
    many = rows.union(rows.selectExpr("id + 3000", "a + 1", "b", "g"))
    cached = (
        spark.range(30_000, numPartitions=2).selectExpr("id", "hash(id) % 500 AS a", "hash(id, 1) % 500 AS b").cache()
    )
    preference = sk.Preference(minimize=["a", "b"])
    found["filtered"] = len(filtered(cached, preference, "error")[1]) > 0
    best = [sorted(row.id for row in skyline(cached, preference, stable=stable).collect()) for stable in (None, False)]
    found["same"] = best[0] == best[1] != []
    found["groups"] = skyline(many, sk.Preference(minimize=["a"], by=["g"])).count()
    register(spark)
    many.createOrReplaceTempView("many")
    found["sql"] = spark.sql("SELECT * FROM skyline(TABLE(many), 'a min', 'B min')").count()
    found["sql groups"] = spark.sql("SELECT * FROM skyline(TABLE(many), 'a min', 'g by')").count()
    complaints: dict[str, Callable[[], object]] = {
        "task": lambda: skyline(spark.sql("SELECT double('NaN') AS a"), sk.Preference(minimize=["a"])).collect(),
        "function": lambda: spark.sql("SELECT * FROM skyline(TABLE(many), 'z min')").collect(),
        "other": lambda: remote_session(url, **{"spark.sql.shuffle.partitions": "none"}),
    }
    for name, work in complaints.items():
        try:
            with plain_errors():
                work()
        except sk.SkytideError as error:
            found[name] = str(error)
    with tempfile.TemporaryDirectory() as folder:
        found["windows"] = run(spark, Case(groups=4, rows=20, batches=2), Path(folder))
    spark.stop()
    return found


if __name__ == "__main__":
    if sys.argv[1] == "server":
        server()
    else:
        print(json.dumps(client(sys.argv[2])))
