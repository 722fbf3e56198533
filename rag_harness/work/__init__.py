"""How work goes on in this process: clocks that can pause, threads for synchronous work, values made once.

``deadline`` limits time, ``local_work`` runs what blocks beside the event loop, ``once`` makes a value on first use,
``reporting`` says how far long work is, ``garbage`` keeps the collector away from what stays. Every room above may
call it. It knows nothing of what the work is. Begin reading with ``local_work.py``.
"""
