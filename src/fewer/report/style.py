"""How the page looks: one column on a phone, two charts abreast on a desk, light and dark by the reader's choice."""

from __future__ import annotations

__all__ = ["COLOURS", "SCRIPT", "STYLE"]

COLOURS = 6
# blue, orange, green, violet, rose, teal: told apart by most eyes, and against either paper
_LIGHT = ("#0b62c4", "#c2500c", "#15803d", "#7c3aed", "#be185d", "#0f766e")
_DARK = ("#6cb2ff", "#ffa36c", "#6fd08c", "#b79bff", "#ff8fc0", "#5ed6c6")


def _theme(paper: str, colours: tuple[str, ...]) -> str:
    return paper + "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))


_DAY = _theme(
    "color-scheme:light;--ink:#1a2027;--paper:#f6f7f9;--card:#fff;--soft:#5c6670;--rule:#dfe3e8;--tint:#e9f1fb;--plate:none;",
    _LIGHT,
)
_NIGHT = _theme(
    "color-scheme:dark;--ink:#e7eaee;--paper:#111418;--card:#1a1e24;--soft:#9ba6b1;--rule:#313841;--tint:#1b2a3b;"
    "--plate:invert(.92) hue-rotate(180deg);",
    _DARK,
)

STYLE = (
    f":root{{{_DAY}}}@media (prefers-color-scheme:dark){{:root{{{_NIGHT}}}}}"
    f":root[data-theme=light]{{{_DAY}}}:root[data-theme=dark]{{{_NIGHT}}}"
    + """
*{box-sizing:border-box}html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
body{font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--paper);
margin:0}
main,header,footer{max-width:66rem;margin:0 auto;padding:0 1.1rem}header{padding-top:2.2rem}
h1{font-size:clamp(1.6rem,5vw,2.3rem);line-height:1.15;margin:0 3.4rem .4rem 0;letter-spacing:-.02em;text-wrap:balance}
h2{font-size:1.45rem;line-height:1.2;margin:0 0 .5rem;letter-spacing:-.01em}h3{font-size:1.05rem;margin:1.9rem 0 .3rem}
p{margin:.4rem 0 .8rem;max-width:46rem}.lead{font-size:1.08rem;color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:.4rem;margin:1rem 0 0}nav a{padding:.22rem .75rem;border-radius:99px;
background:var(--card);border:1px solid var(--rule);color:var(--ink);text-decoration:none;font-size:.9rem}
nav a:hover,nav a:focus{border-color:var(--c0);color:var(--c0)}
section{background:var(--card);border:1px solid var(--rule);border-radius:14px;padding:1.5rem clamp(1rem,3vw,2rem);
margin:1.3rem 0;scroll-margin-top:1rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem;margin:1rem 0}
.card{background:var(--tint);border-radius:10px;padding:.7rem .9rem}.card b{display:block;font-size:1.55rem;
line-height:1.2;font-variant-numeric:tabular-nums;letter-spacing:-.02em}.card span{color:var(--soft);font-size:.86rem;
line-height:1.35;display:block}.card em{display:block;font-style:normal;font-size:.86rem;line-height:1.35;
margin-top:.25rem}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.6rem,1fr));gap:.9rem 1.1rem;margin:.8rem 0 .4rem}
.headline{font-size:1.12rem;font-weight:600;margin:.2rem 0 .1rem}
.panel b{display:block;font-size:.86rem;font-weight:600;color:var(--soft);margin-bottom:.25rem}
.panel span{display:block;font-size:.86rem;font-variant-numeric:tabular-nums;margin:.05rem 0 .35rem}
.track{position:relative;height:.95rem;background:var(--tint);border-radius:3px}.track i{display:block;height:100%;
border-radius:3px}.track u{position:absolute;top:.36rem;height:.23rem;background:var(--ink);opacity:.75;
border-radius:2px}
#tip{position:absolute;z-index:9;pointer-events:none;background:var(--ink);color:var(--paper);padding:.2rem .55rem;
border-radius:6px;font-size:.84rem;max-width:17rem}
.hover{fill:transparent}[data-tip]{cursor:crosshair}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:.4rem 1.8rem;
align-items:start}
.table{overflow-x:auto;margin:.6rem 0 1rem}table{border-collapse:collapse;font-size:.92rem;
font-variant-numeric:tabular-nums;min-width:min(100%,20rem)}td,th{padding:.34rem .6rem;text-align:right;
border-bottom:1px solid var(--rule);white-space:nowrap;vertical-align:top}td:first-child,th:first-child{text-align:left;
padding-left:0}th{color:var(--soft);font-weight:600;font-size:.84rem}tbody tr:last-child td{border-bottom:0}
td:first-child,th:first-child{position:sticky;left:0;background:var(--card)}
.wide th,.wide td:not(:first-child){text-align:left;white-space:normal}.wide td:first-child{font-weight:600}
figure{margin:1rem 0;min-width:0}figcaption,.soft{color:var(--soft);font-size:.88rem;line-height:1.45}
figcaption{margin-top:.3rem}
svg{width:100%;height:auto;display:block;max-width:34rem;overflow:visible}
svg text{font:12px system-ui,-apple-system,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}
.grid{stroke:var(--rule)}.line{fill:none;stroke-width:2.2;stroke-linejoin:round}.band{opacity:.16;stroke:none}
.dot{display:inline-block;width:.7rem;height:.7rem;border-radius:50%;margin-right:.45rem}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.1rem 1rem;padding:0;margin:.2rem 0 0;font-size:.88rem}
.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:3px;margin-right:.4rem;vertical-align:-1px}
img{max-width:100%;border-radius:8px}img.plate{background:#fff;padding:.3rem;filter:var(--plate)}.pixels{image-rendering:pixelated}
.digits{display:grid;grid-template-columns:repeat(auto-fill,minmax(4.6rem,1fr));gap:.6rem;max-width:46rem;
margin:.5rem 0}.digits figure{margin:0;text-align:center}.digits img{width:100%;background:#000}
.digits figcaption{margin:0}
.wrong figcaption{color:var(--c1);font-weight:600}
.map{border:1px solid var(--rule);border-radius:8px;overflow:hidden}
.halo{paint-order:stroke;stroke:var(--card);stroke-width:3.5px;stroke-linejoin:round;font-weight:600}
.map .ring{fill:none;stroke:var(--c2);stroke-width:2.2}
.map .hull{fill:none;stroke:var(--c1);stroke-dasharray:5 4;stroke-width:1.5;stroke-linejoin:round}
details{margin:.5rem 0}summary{cursor:pointer;color:var(--c0);font-size:.92rem}
section>details{border-top:1px solid var(--rule);margin:0;padding:.55rem 0}
section>details>summary{font-size:1rem;font-weight:600}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,monospace;overflow-wrap:anywhere}
#theme{position:absolute;top:1.4rem;right:max(1.1rem,calc(50vw - 32rem));width:2.6rem;height:2.6rem;border-radius:50%;
border:1px solid var(--rule);background:var(--card);color:var(--ink);font-size:1.1rem;cursor:pointer}
footer{color:var(--soft);font-size:.86rem;padding-bottom:2rem}
@media (max-width:560px){svg text{font-size:14px}.pair{gap:0}}
@media print{#theme,nav{display:none}section{break-inside:avoid;border:0;padding:0}}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
"""
    + "".join(
        f".line.c{n},.whisker.c{n}{{stroke:var(--c{n})}}text.c{n},rect.c{n},circle.c{n},path.c{n}.band{{fill:var(--c{n})}}"
        f"i.c{n}{{background:var(--c{n})}}"
        for n in range(COLOURS)
    )
)

# The whole of the page's behaviour: a button that turns day into night, remembered by the browser where it may, and
# the values under a pointer or finger.
SCRIPT = """
(function(){var root=document.documentElement,key="fewer-theme",button=document.getElementById("theme");
function dark(){var t=root.dataset.theme;return t?t==="dark":matchMedia("(prefers-color-scheme:dark)").matches}
function show(){button.textContent=dark()?"\\u2600":"\\u263E";button.setAttribute("aria-pressed",String(dark()))}
try{var kept=localStorage.getItem(key);if(kept)root.dataset.theme=kept}catch(e){}
button.addEventListener("click",function(){root.dataset.theme=dark()?"light":"dark";
try{localStorage.setItem(key,root.dataset.theme)}catch(e){}show()});button.hidden=false;show();
var tip=document.getElementById("tip");function value(event){var t=event.target,at=t.closest&&t.closest("[data-tip]");
tip.hidden=!at;if(!at)return;tip.textContent=at.dataset.tip;var wide=tip.offsetWidth,right=root.clientWidth-wide-8;
tip.style.left=Math.max(8,Math.min(event.pageX-wide/2,right+scrollX))+"px";
tip.style.top=event.pageY-tip.offsetHeight-14+"px"}
addEventListener("pointermove",value);addEventListener("pointerdown",value);
addEventListener("scroll",function(){tip.hidden=true},true)})();
"""
