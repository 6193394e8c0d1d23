#include "base/page.h"

#include "base/format.h"

namespace netcl {
namespace {

constexpr std::string_view kStyle =
    R"(:root{--text:#1c2430;--soft:#5b6878;--back:#fff;--line:#dde3ea;--first:#2b6cb0;--second:#c05621;--third:#2f855a;--other:#9fb3c8;--good:47,133,90;--bad:197,48,48}
@media(prefers-color-scheme:dark){:root{--text:#dfe6ee;--soft:#98a6b5;--back:#14181f;--line:#2c3542;--first:#63b3ed;--second:#f6ad55;--third:#68d391;--other:#5b6f85;--good:72,187,120;--bad:252,129,129}}
body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:62rem;padding:0 1rem;color:var(--text);background:var(--back)}
h1{font-size:1.5rem;margin:0 0 1rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{margin:.3rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse}th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:1rem}
svg{width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
p.key span{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}
@media(max-width:36rem){body{margin:1rem auto}td,th{padding:.25rem .4rem}.wide{font-size:.9rem}}
)";

}  // namespace

std::string html_page(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>{}</title><style>\n{}{}</style>"
      "</head><body>\n{}</body></html>\n",
      html_text(title), kStyle, style, body);
}

}  // namespace netcl
