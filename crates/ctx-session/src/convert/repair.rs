//! Writing a clean copy of a transcript, without its unreadable parts.

use std::io::Write;

use ctx_core::Result;
use ctx_dialect::json::{Object, ObjectWriter, array, identifier, quote};

use crate::entry::{Audience, Detail, MessageEncoding, TreeEntry};
use crate::schema::{Edits, PI_VERSION, iso_or_epoch, write_error, write_json_line};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes a copy without damage. A pi session of any version becomes a valid session of version
    /// 3 with intact lines byte for byte; other line-based formats keep all lines except bad ones;
    /// a chat document keeps its complete messages. The omitted parts can be saved with
    /// [`Transcript::unreadable`]. The overlay is not included.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if writing fails, and errors from reading an
    /// entry.
    pub fn repaired_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        match (self.format.is_pi(), self.is_document) {
            (true, _) => self.pi_copy(out),
            (_, false) => {
                for entry in self.file_entries() {
                    write_json_line(out, &self.text(entry)?)?;
                }
                Ok(())
            }
            (_, true) => self.document_copy(out),
        }
    }

    /// Writes the unreadable bytes, which belong to no entry, and returns their number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if reading or writing fails.
    pub fn unreadable<W: Write + ?Sized>(&self, out: &mut W) -> Result<u64> {
        let mut total = 0;
        for &span in &self.lost {
            let bytes = self.source.read(span)?;
            total += bytes.len() as u64;
            out.write_all(&bytes).and_then(|()| out.write_all(b"\n")).map_err(write_error)?;
        }
        Ok(total)
    }

    /// Writes every line of a pi session. Changes only missing or broken ids and parents, and what
    /// version 3 represents differently.
    pub(crate) fn pi_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        write_json_line(out, &self.pi_header())?;
        let migrate = self.header.version.is_none_or(|v| v < PI_VERSION);
        for entry in self.file_entries() {
            write_json_line(out, &self.pi_line(entry, self.file_parent(entry), migrate)?)?;
        }
        Ok(())
    }

    pub(crate) fn pi_header(&self) -> String {
        let Some(raw) = &self.header.raw else { return self.fresh_header() };
        let Ok(object) = Object::parse(raw) else { return self.fresh_header() };
        let mut edits = Edits::new(raw, &object);
        if self.header.version.is_none_or(|v| v < PI_VERSION) {
            edits.set("version", PI_VERSION.to_string());
        }
        if object.id("id").is_none_or(|id| id.is_empty()) {
            edits.set("id", quote(&self.session_id()));
        }
        edits.apply()
    }

    /// Creates a header for a transcript without one.
    pub(crate) fn fresh_header(&self) -> String {
        let header = &self.header;
        let time = header.timestamp.or_else(|| self.entries.iter().find_map(|e| e.timestamp));
        ObjectWriter::new()
            .text("type", "session")
            .plain("version", PI_VERSION)
            .text("id", &self.session_id())
            .text("timestamp", &iso_or_epoch(time))
            .text("cwd", header.cwd.as_deref().unwrap_or_default())
            .text_if("parentSession", header.parent_session.as_deref())
            .end()
    }

    /// Returns the session's id, or one derived from the first entry.
    fn session_id(&self) -> String {
        if let Some(id) = self.header.id.as_deref().filter(|id| !id.is_empty()) {
            return id.to_owned();
        }
        let first = self.raw_line(0).unwrap_or_default();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(&first).as_bytes()[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns an entry's line, as a child of the entry at `parent_index`.
    pub(crate) fn pi_line(
        &self,
        entry: &TreeEntry,
        parent_index: Option<usize>,
        migrate: bool,
    ) -> Result<String> {
        let text = self.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return Ok(text) };
        let mut edits = Edits::new(&text, &object);
        let parent = parent_index.and_then(|index| self.entries.get(index));
        let recorded = object.id("parentId");
        // If the parent got a new id because its own was in use, the child still names the old one.
        let found = recorded.as_deref().and_then(|id| self.index_of(id));
        let is_unchanged = match parent {
            None => recorded.is_none() && object.has("parentId"),
            Some(parent) => recorded.as_deref() == Some(&*parent.id) && found == parent_index,
        };
        if !is_unchanged {
            edits.set("parentId", parent.map_or("null".to_owned(), |p| quote(&p.id)));
        }
        if object.text("id").as_deref() != Some(&*entry.id) {
            edits.set("id", quote(&entry.id));
        }
        self.retarget(entry, &object, &mut edits);
        if entry.audience == Audience::Nobody && entry.is_compaction() {
            // The summary was forgotten, but the compaction still applies.
            edits.set("summary", quote(""));
            edits.set("details", "null".to_owned());
        }
        if migrate {
            self.migrate(entry, &object, &mut edits);
        }
        Ok(edits.apply())
    }

    /// Updates references to an entry that got a new id.
    pub(crate) fn retarget(&self, entry: &TreeEntry, object: &Object<'_>, edits: &mut Edits<'_>) {
        let data = object.object("data");
        let (raw, target) = match entry.detail.as_deref() {
            Some(Detail::Edit { target } | Detail::Leaf { target }) => {
                (object.get("targetId"), *target)
            }
            Some(Detail::Undo { target }) => (data.and_then(|d| d.get("targetId")), *target),
            Some(Detail::Compaction { first_kept, .. }) => {
                (object.get("firstKeptEntryId"), *first_kept)
            }
            _ => return,
        };
        let target = target.and_then(|index| self.entries.get(index as usize));
        if let (Some(raw), Some(target)) = (raw, target)
            && identifier(raw).as_deref() != Some(&*target.id)
        {
            edits.replace(raw.get(), quote(&target.id));
        }
    }

    /// Converts what version 3 represents differently from 1 and 2.
    fn migrate(&self, entry: &TreeEntry, object: &Object<'_>, edits: &mut Edits<'_>) {
        if let Some(Detail::Compaction { first_kept, .. }) = entry.detail.as_deref()
            && !object.has("firstKeptEntryId")
        {
            let kept = first_kept.and_then(|index| self.entries.get(index as usize));
            edits.set("firstKeptEntryId", quote(&kept.unwrap_or(entry).id));
        }
        let role = object.object("message").and_then(|message| message.get("role"));
        if let Some(role) = role.filter(|role| role.get() == "\"hookMessage\"") {
            edits.replace(role.get(), "\"custom\"".to_owned());
        }
    }

    /// Writes a document with every complete message and every other field.
    pub(crate) fn document_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        let mut summaries = Vec::new();
        let mut messages = Vec::new();
        for entry in self.file_entries() {
            let list = match entry.encoding {
                MessageEncoding::PonyBunnySummary => &mut summaries,
                _ => &mut messages,
            };
            list.push(self.text(entry)?);
        }
        if self.body.is_empty() && !self.format.holds_compacted_history() {
            return write_json_line(out, &array(messages));
        }
        let mut body = ObjectWriter::new();
        for (key, value) in &self.body {
            body = body.raw(key, value.as_str());
        }
        body = body.raw("messages", array(messages));
        if self.format.holds_compacted_history() {
            body = body.raw("compactedHistory", array(summaries));
        }
        write_json_line(out, &body.end())
    }
}
