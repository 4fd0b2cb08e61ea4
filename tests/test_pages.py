"""From the bytes of a page to its text."""

import pytest

from helpers.pages import page_text


@pytest.mark.parametrize(
    "page, text",
    [
        ("<h1>Title</h1><p>One\n  two</p>\n \n<p>three</p>", "Title\n\nOne two\n\nthree"),
        ("<p>in<b>li</b>ne <code>a</code>, b</p>", "inline a, b"),
        ("loose<div>block<p>inner</p></div>end", "loose\n\nblock\n\ninner\n\nend"),
        ("<p>x</p><ul>\n<li>a</li>\n<li><p>b</p></li></ul><p>y</p>", "x\n\na\nb\n\ny"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "a\nb\nc"),
        ("<dl><dt>t</dt><dd>d</dd></dl>", "t\n\nd"),
        ("<p>a<br>b</p>", "a\nb"),
        ("<p>x</p><pre>  if a:\n\n      b  c\n</pre><p>y</p>", "x\n\n  if a:\n\n      b  c\n\ny"),
        ("<pre>\n<span>a</span> = <b>1</b></pre>", "a = 1"),
        (
            "<table><tr><th>k</th><th>v\n w</th></tr><tr><td><p>1</p><p>2</p></td><td>3</td></tr></table>",
            "k | v w\n\n1 2 | 3",
        ),
        ("<table><tr><td></td></tr></table>z", "z"),
        ("<table><tr><td><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>", "1\n2\n\na\nb"),
        (
            "<nav>n</nav><header>h<nav>n</nav></header>x<!-- c --><script>s</script><footer>f</footer>",
            "x",
        ),
        ("<header>site</header><main><header><h1>Title</h1></header>x</main>", "Title\n\nx"),
        ("<article><header><h1>Title</h1></header>x<footer>y</footer></article>", "Title\n\nx\n\ny"),
        ("<style>s</style><noscript>n</noscript><template><p>t</p></template>", ""),
        ("<p>out</p><article><p>art</p></article>", "art"),
        ("<article>art</article><main><p>main</p></main>", "main"),
        ("<p>a</p><p> &nbsp; </p><div>\n\t</div><p>b</p>", "a\n\nb"),
        ("<p>1 &lt; 2 &amp;&nbsp;3</p>", "1 < 2 & 3"),
        ("<pre>a\r\nb<br>c</pre>", "a\nb\nc"),
        ("", ""),
    ],
)
def test_page_text(page, text):
    assert page_text(page) == text
