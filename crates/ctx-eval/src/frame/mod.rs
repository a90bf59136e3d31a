//! The frame of every page: what stands around a page's own markup.
//!
//! A page is complete in itself: style, script and data are inline, nothing is fetched, and a
//! content security policy makes the browser refuse to try. It opens from a disk, from an attachment
//! or from a build artefact alike. The data stands in it as JSON, so the page is also the report.
//!
//! The frame brings the head, the house style, a script that reads the data and writes words and
//! numbers (`readReport`, `el`, `byId`, `whole`, ...), and the elements `name`, `path` and `facts`
//! for the page's own script to fill.

use std::io::{self, BufWriter, Write};

use serde::Serialize;

const PAGE: &str = include_str!("frame.html");
/// The house style.
pub const STYLE: &str = include_str!("frame.css");

/// Reads the page's data, and writes words, numbers and elements.
pub const SCRIPT: &str = include_str!("frame.js");

/// What a page adds to the frame. All of it is the program's own; what comes from elsewhere is data,
/// and goes through [`Frame::write`].
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The title, and the mark at the head of the page: the command that made it.
    pub title: &'a str,
    /// Style that comes after the house style.
    pub style: &'a str,
    /// The markup of the page's sections.
    pub body: &'a str,
    /// Scripts in order of use, after the frame's own: the last one starts the page.
    pub scripts: &'a [&'a str],
}

impl Frame<'_> {
    /// Writes the page with `data` in it to `out`. The data is streamed: no second copy of it is
    /// made.
    ///
    /// # Errors
    ///
    /// Those of `out`, and [`io::ErrorKind::InvalidData`] when the data cannot be written as JSON.
    pub fn write(&self, data: &impl Serialize, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        for part in PAGE.split("{{") {
            let Some((slot, text)) = part.split_once("}}") else {
                out.write_all(part.as_bytes())?;
                continue;
            };
            let pieces: &[&str] = match slot {
                "title" => &[self.title],
                "style" => &[STYLE, self.style],
                "body" => &[self.body],
                "script" => &[SCRIPT],
                _ => {
                    write_data(data, out)?;
                    &[]
                }
            };
            let scripts = if slot == "script" { self.scripts } else { &[] };
            for piece in pieces.iter().chain(scripts) {
                out.write_all(piece.as_bytes())?;
            }
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }
}

fn write_data(data: &impl Serialize, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let mut json = BufWriter::new(InScript { out });
    serde_json::to_writer(&mut json, data)?;
    json.flush()
}

/// JSON on its way into a `<script>` element. A transcript may hold `</script>` or `<!--`, which
/// would end the element or hide its end. In JSON a `<` can stand in strings only, and there an
/// escape means the same.
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
