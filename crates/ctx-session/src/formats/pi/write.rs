//! Writing pi's session JSONL.

use std::io::Write;

use ctx_core::Result;
use ctx_dialect::json::{ObjectWriter, quote};

use crate::schema::{PI_VERSION, write_json_line};

/// A writer of a pi session.
pub(crate) struct PiLines<W> {
    pub(crate) out: W,
    /// The id of the last entry, as JSON.
    pub(crate) parent: String,
}

impl PiLines<Vec<u8>> {
    /// Begins a session in memory.
    pub(crate) fn in_memory(id: &str, time: Option<&str>, cwd: Option<&str>) -> Result<Self> {
        let header = ObjectWriter::new().text("type", "session").plain("version", PI_VERSION);
        let header = header.text("id", id).text_if("timestamp", time).text_if("cwd", cwd);
        Self::new(Vec::new(), &header.end())
    }
}

impl<W: Write> PiLines<W> {
    pub(crate) fn new(mut out: W, header: &str) -> Result<Self> {
        write_json_line(&mut out, header)?;
        Ok(Self { out, parent: "null".to_owned() })
    }

    /// Writes an entry. `time` is JSON.
    pub(crate) fn entry(
        &mut self,
        kind: &str,
        id: &str,
        time: &str,
        fields: &ObjectWriter,
    ) -> Result<()> {
        let id = quote(id);
        let entry =
            ObjectWriter::new().text("type", kind).raw("id", &id).raw("parentId", &self.parent);
        write_json_line(&mut self.out, &entry.raw("timestamp", time).with(fields).end())?;
        self.parent = id;
        Ok(())
    }

    /// Writes an entry of ctx with this type, which is also its id. `value` is JSON.
    pub(crate) fn custom(&mut self, kind: &str, value: &str) -> Result<()> {
        let fields = ObjectWriter::new().text("customType", kind).raw("data", value);
        self.entry("custom", kind, "null", &fields)
    }

    /// Writes the messages into which one message was split.
    pub(crate) fn messages(
        &mut self,
        id: &str,
        time: &str,
        parts: impl IntoIterator<Item = String>,
    ) -> Result<()> {
        for (n, part) in parts.into_iter().enumerate() {
            let id = if n == 0 { id.to_owned() } else { format!("{id}.{n}") };
            self.entry("message", &id, time, &ObjectWriter::new().raw("message", part))?;
        }
        Ok(())
    }
}
