//! The pages: a replay, an evaluation and what was saved, each as one file, and the inspector as a
//! server's page.
//!
//! All have the same frame and the same parts: `assets/pages.css`, and the scripts of
//! `assets/parts/`. A page that is a file is self-contained: style, script and data are inline, and
//! a content security policy forbids the browser to fetch anything. It can be opened from a disk,
//! an attachment or a build artefact. It contains its data as JSON, so it is also the report.

mod assets;
pub mod bench;
pub mod eval;
pub mod replay;
pub(crate) mod served;
pub mod stats;

use std::io::{self, BufWriter, Write};

use serde::Serialize;

pub(crate) use assets::asset;

/// The markup around every page, with slots in braces.
fn frame() -> &'static str {
    asset("frame.html")
}

/// The style of all pages.
pub(crate) fn style() -> &'static str {
    asset("pages.css")
}

/// The scripts of all pages. Outside of functions, each uses only earlier scripts.
pub(crate) fn parts() -> impl Iterator<Item = &'static str> {
    const PATHS: [&str; 13] = [
        "parts/text.js",
        "parts/words.js",
        "parts/table.js",
        "parts/figures.js",
        "parts/plot.js",
        "parts/marks.js",
        "parts/model.js",
        "parts/chart.js",
        "parts/totals.js",
        "parts/requests.js",
        "parts/request.js",
        "parts/compactions.js",
        "parts/session.js",
    ];
    PATHS.into_iter().map(asset)
}

/// Forbids the browser to load anything from outside of the page.
const POLICY: &str = "<!-- The page is self-contained. This policy makes the browser refuse everything else. -->
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">
";

/// Returns the slots of the frame, each with the markup that follows it.
fn slots() -> impl Iterator<Item = (&'static str, &'static str)> {
    frame().split("{{").map(|part| part.split_once("}}").unwrap_or(("", part)))
}

/// The parts of a page file that other pages do not have. They are written unescaped, so they must
/// come from the program. Content of transcripts is the `data` of [`Frame::write`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// The subcommand of `ctx` that makes the page.
    pub(crate) name: &'static str,
    /// The style, which follows the style of all pages.
    pub(crate) style: &'static str,
    /// The markup of the page's sections.
    pub(crate) body: &'static str,
    /// The script that starts the page.
    pub(crate) script: &'static str,
}

impl Frame {
    /// Writes the page with `data` in it to `out`. The data is streamed, without a second copy.
    ///
    /// # Errors
    ///
    /// Errors of `out`, and [`io::ErrorKind::InvalidData`] when the data cannot be written as JSON.
    pub(crate) fn write(
        &self,
        data: &impl Serialize,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        for (slot, text) in slots() {
            match slot {
                "policy" => out.write_all(POLICY.as_bytes())?,
                "title" => write!(out, "ctx {}", self.name)?,
                "style" => write!(out, "<style>\n{}{}</style>\n", style(), self.style)?,
                "kind" => write!(out, "{}", self.name)?,
                "mark" => write!(out, "<p class=\"mark\"><b>ctx</b> {}</p>", self.name)?,
                "body" => write!(out, "{}", self.body)?,
                "script" => self.write_script(data, out)?,
                _ => {}
            }
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }

    fn write_script(
        &self,
        data: &impl Serialize,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        write!(out, "<script type=\"application/json\" id=\"report\">")?;
        let mut json = BufWriter::new(InScript { out });
        serde_json::to_writer(&mut json, data)?;
        json.flush()?;
        drop(json);
        write!(out, "</script>\n<script>\n")?;
        for part in parts().chain([self.script]) {
            out.write_all(part.as_bytes())?;
        }
        write!(out, "</script>")
    }
}

/// Writes JSON into a `<script>` element. A transcript may contain `</script>` or `<!--`, which
/// would end the element or hide its end, so each `<` is escaped. In JSON a `<` occurs only in
/// strings, where an escape has the same meaning.
struct InScript<'a, W: ?Sized> {
    out: &'a mut W,
}

impl<W: Write + ?Sized> Write for InScript<'_, W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        for (nth, piece) in json.split(|&byte| byte == b'<').enumerate() {
            if nth > 0 {
                self.out.write_all(b"\\u003c")?;
            }
            self.out.write_all(piece)?;
        }
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
pub(crate) mod tests;
