"""The smallest documents of each type, written by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence

PAGE = (
    "<!doctype html><html><head><title>A title</title><style>p {color: red}</style></head><body><nav><a href=x>Home</a>"
    "</nav><main><h1>The ice</h1><p>Ice <b>melts</b> in the <code>border-radius</code>,<br>see "
    "https://example.org/x here.</p><pre>let x = 1</pre><script>var a = '<p>'</script><ul><li>One item<li>Two items"
    "</ul><p hidden>unseen</p><p>H<sub>2</sub>O stays<sup><a href=#n>1</a></sup>.</p></main><footer>Imprint</footer>"
)
MARKDOWN = """---
title: A title
---
{{CSSRef}}

# The {{cssxref("border-radius")}} property

It *rounds* the `corners` of [a box](https://example.org/box "A title"), as {{domxref("Window.fetch", "fetch()")}}
does; see <https://example.org> and ![an image](x.png).

> [!NOTE]
> Press <kbd>Enter</kbd>.

```css
div { color: red }
```

| name | meaning |
|---|---|
| radius | half of it |

<div class="x"><p>Inside a block.</p></div>
"""


def zip_members(members: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def make_docx(body: str = "") -> bytes:
    body = body or (
        "<w:p><w:r><w:t>The ice </w:t></w:r><w:del><w:r><w:delText>never </w:delText></w:r></w:del><w:r><w:t>melts."
        "</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>A</w:t><w:tab/><w:t>cell</w:t></w:r></w:p></w:tc></w:tr>"
        "</w:tbl>"
    )
    xml = f'<?xml version="1.0"?><w:document xmlns:w="urn:w"><w:body>{body}</w:body></w:document>'
    note = (
        '<w:footnotes xmlns:w="urn:w"><w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>'
    )
    return zip_members({"[Content_Types].xml": "<Types/>", "word/document.xml": xml, "word/footnotes.xml": note})


def make_epub(chapters: Mapping[str, str]) -> bytes:
    items = "".join(f'<item id="{name}" href="{name}"/>' for name in chapters)
    order = "".join(f'<itemref idref="{name}"/>' for name in reversed([*chapters]))
    nav = '<item id="nav" href="nav.xhtml" properties="nav"/>'
    package = f"<package><manifest>{nav}{items}</manifest><spine><itemref idref='nav'/>{order}</spine></package>"
    container = '<container><rootfiles><rootfile full-path="in/book.opf"/></rootfiles></container>'
    members = {"META-INF/container.xml": container, "in/book.opf": package, "in/nav.xhtml": "<p>Contents</p>"}
    return zip_members(members | {f"in/{name}": text for name, text in chapters.items()})


def make_pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A page per list of lines."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = ["<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>"]
    objects.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for number, lines in enumerate(pages):
        text = "BT /F 12 Tf 14 TL 72 720 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        page = "/Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<<{page}/Contents {5 + 2 * number} 0 R>>")
        objects.append(f"<</Length {len(text)}>>stream\n{text}\nendstream")
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer<</Root 1 0 R/Size {len(objects) + 1}>>\nstartxref\n{len(out)}\n%%EOF"
    return out + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()
