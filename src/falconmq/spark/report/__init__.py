"""The report: one HTML page that needs nothing but itself.

`facts` is what the page says, as plain values; `gathering` asks the lake for it; `words` puts it
into sentences; `charts` draws it; `page` sets it.
"""
