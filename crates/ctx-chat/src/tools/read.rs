//! `read`: a range of a file's lines.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use ctx_core::{ToolCall, ToolOutput};
use ctx_terminal::format::counted;
use serde::Deserialize;

use super::{Tool, Tools, arguments, blocking, file_error};

pub(super) const NAME: &str = "read";

/// Maximum size of one result.
const MOST_LINES: usize = 2_000;
const MOST_BYTES: usize = 128 << 10;

/// Number of bytes checked to distinguish text from binary data.
const HEAD: usize = 8 << 10;

pub(super) fn spec() -> (&'static str, String, &'static str) {
    let about = format!(
        "Reads lines of a text file: at most `limit`, from `offset` (the first is 1). A call \
         returns at most {MOST_LINES} lines or {} kB, and the offset of the next line.",
        MOST_BYTES >> 10,
    );
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"},"offset":{"type":"integer","minimum":1},"limit":{"type":"integer","minimum":1}},"required":["path"]}"#;
    (NAME, about, parameters)
}

#[derive(Deserialize)]
struct Arguments {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl Tools {
    pub(super) async fn read(&self, call: &ToolCall) -> Result<ToolOutput, String> {
        let Arguments { path, offset, limit } = arguments(call)?;
        let located = self.allowed(Tool::Read, &path, None).await?;
        let from = offset.unwrap_or(1).max(1);
        let most = limit.unwrap_or(MOST_LINES).clamp(1, MOST_LINES);
        let shown = self.place.shown(&located);
        blocking(move || lines(&located.path, &shown, from, most)).await.map(ToolOutput::text)
    }
}

fn lines(path: &Path, shown: &str, from: usize, most: usize) -> Result<String, String> {
    let failed = file_error(shown);
    // A pipe would block, and a device may have no end.
    let metadata = path.metadata().map_err(&failed)?;
    if metadata.is_dir() {
        return Err(format!("{shown}: this is a folder; bash can list it"));
    }
    if !metadata.is_file() {
        return Err(format!("{shown}: not a text file, but a device or a pipe"));
    }
    let file = ctx_disk::open(path).map_err(&failed)?;
    let mut reader = BufReader::with_capacity(HEAD, file);
    if reader.fill_buf().map_err(&failed)?.contains(&0) {
        return Err(format!("{shown}: not a text file"));
    }
    for passed in 1..from {
        if reader.skip_until(b'\n').map_err(&failed)? == 0 {
            return Err(format!("{shown}: it has no more than {}", counted(passed - 1, "line")));
        }
    }
    let (mut bytes, mut count, mut is_cut) = (Vec::new(), 0, false);
    while count < most && bytes.len() < MOST_BYTES {
        let room = (MOST_BYTES - bytes.len()) as u64;
        let got = (&mut reader).take(room).read_until(b'\n', &mut bytes).map_err(&failed)?;
        if got == 0 {
            break;
        }
        count += 1;
        is_cut = bytes.last() != Some(&b'\n') && bytes.len() >= MOST_BYTES;
    }
    if count == 0 && from > 1 {
        return Err(format!("{shown}: it has no more than {}", counted(from - 1, "line")));
    }
    let more = !reader.fill_buf().map_err(&failed)?.is_empty();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let next = from + count;
    if is_cut && more {
        text.push_str(&format!("\n[line {} is cut; read the rest of it with bash]", next - 1));
    } else if more {
        text.push_str(&format!("[more follows: go on with \"offset\": {next}]"));
    }
    if text.is_empty() { Ok("(the file is empty)".to_owned()) } else { Ok(text) }
}
