"""Which operations the graphs of the architectures hold, and what stands in the way of a pack."""

import collections, sys, time, torch, json, traceback
from scripts.architectures import vision
vision.define_operators()
from scripts.architectures import language, plain
from fewer.packs.trace import trace as T
from fewer.packs.trace.ops import _TABLE
from fewer.packs.runtime.runtime import Network
import numpy as np
allm = {**language.MODELS, **vision.MODELS, **plain.MODELS}
names = sys.argv[1:] or list(allm)
ops = collections.Counter(); missing = collections.defaultdict(list)
for n in names:
    t = time.time()
    torch.manual_seed(0)
    try:
        m, x = allm[n](); m.eval()
        with torch.no_grad(): want = m(*x)
    except Exception as e:
        print(n, "BUILD", type(e).__name__, str(e)[:300]); continue
    try:
        named = T._default_names(x)
        ex = T._exported(m, named)
    except Exception as e:
        print(n, "EXPORT", str(e)[:400]); continue
    miss = set()
    for s in ex.graph.nodes:
        if s.op == "call_function":
            k = str(s.target).removeprefix("aten.").rsplit(".",1)[0]
            ops[k] += 1
            sch = getattr(s.target, "_schema", None)
            nm = sch.name.removeprefix("aten::") if sch else str(s.target)
            if nm not in _TABLE and "sym" not in nm and "assert" not in nm and "getitem" not in nm: miss.add(nm); missing[nm].append(n)
    try:
        p, ts = T._converted(ex, named)
        got = Network(p, ts).predict(*[v.numpy() for v in x])
        print(n, "OK", np.abs(got-want.numpy()).max()/np.abs(want.numpy()).max(), f"{time.time()-t:.1f}s", sorted(miss))
    except Exception as e:
        print(n, "TRACE", type(e).__name__, str(e)[:300], sorted(miss), f"{time.time()-t:.1f}s")
    sys.stdout.flush()
print(ops)
for k, v in missing.items(): print(k, len(v), v[:6])
