"""The Open Inference Protocol, version 2, over REST: `/v2`, as KServe's and Triton's clients speak it."""
