"""placeholder"""

CLAIMS = ()
