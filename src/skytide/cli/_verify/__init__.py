"""What `skytide verify` does: the commands' own runs, compared with the definitions on the user's data.

`rows` reads DATA once more, `definition` says what the answer of a population is, `populations` who competes at each
instant, `comparing` follows the change streams beside them, `runs` runs the commands, `shrinking` makes a failing input
small. `pipelines` does it for what runs on Spark, and `spark_rows` says which rows it must take. Nothing here uses
`skytide.kernel` or `skytide.monitors`.
"""
