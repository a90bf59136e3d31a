//! A clean copy of a transcript: what was read, without what could not be read.

use std::io::{self, Write};

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::{Fresh, Object, array, identifier, quote};

use crate::entry::{Audience, Detail, TreeEntry};
use crate::format::Format;
use crate::load::{Recipe, place_in};
use crate::log::{self, PI_VERSION};
use crate::transcript::Transcript;

impl Transcript {
    /// Writes a copy without damage. A pi session of any version becomes a valid one of version 3,
    /// in which sound lines stay byte for byte; lines of other formats stay as they are, the bad
    /// ones left out; a chat document is written with its whole messages. What is left out can be
    /// kept with [`Transcript::unreadable`]. What an overlay adds is not part of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if writing fails, and what reading an entry may give.
    pub fn repaired_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        match (self.format, self.is_document) {
            (Format::Pi, _) => self.pi_copy(out),
            (_, false) => {
                for entry in self.file_entries() {
                    line(out, &self.text(entry)?)?;
                }
                Ok(())
            }
            (_, true) => self.document_copy(out),
        }
    }

    /// Writes the bytes that are in no entry because they cannot be read, and says how many.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if reading or writing fails.
    pub fn unreadable<W: Write + ?Sized>(&self, out: &mut W) -> Result<u64> {
        let mut total = 0;
        for &span in &self.lost {
            let bytes = self.source.read(span)?;
            total += bytes.len() as u64;
            out.write_all(&bytes).and_then(|()| out.write_all(b"\n")).map_err(write_error)?;
        }
        Ok(total)
    }

    /// Every line of a pi session, changed only where it has to be: ids and parents that were
    /// missing or broken, and what version 3 does differently.
    pub(crate) fn pi_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        line(out, &self.pi_header())?;
        let migrate = self.header().version.is_none_or(|v| v < PI_VERSION);
        for entry in self.file_entries() {
            line(out, &self.pi_line(entry, self.file_parent(entry), migrate)?)?;
        }
        Ok(())
    }

    pub(crate) fn pi_header(&self) -> String {
        let Some(raw) = &self.header().raw else { return self.fresh_header() };
        let Ok(object) = Object::parse(raw) else { return self.fresh_header() };
        let mut edits = Edits::new(raw, &object);
        if self.header().version.is_none_or(|v| v < PI_VERSION) {
            edits.set("version", PI_VERSION.to_string());
        }
        if object.id("id").is_none_or(|id| id.is_empty()) {
            edits.set("id", quote(&self.session_id()));
        }
        edits.apply()
    }

    /// A header for what has none.
    pub(crate) fn fresh_header(&self) -> String {
        let header = self.header();
        let time = header.timestamp.or_else(|| self.entries.iter().find_map(|e| e.timestamp));
        Fresh::new()
            .text("type", "session")
            .plain("version", PI_VERSION)
            .text("id", &self.session_id())
            .text("timestamp", &iso(time))
            .text("cwd", header.cwd.as_deref().unwrap_or_default())
            .text_if("parentSession", header.parent_session.as_deref())
            .end()
    }

    /// The session's id, or one that is always the same for the same first entry.
    fn session_id(&self) -> String {
        if let Some(id) = self.header().id.as_deref().filter(|id| !id.is_empty()) {
            return id.to_owned();
        }
        let first = self.raw_line(0).unwrap_or_default();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&blake3::hash(&first).as_bytes()[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// An entry's line, as a child of the one at `parent_index`.
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
        // A parent whose own id was taken is meant by the id it was recorded under.
        let found = recorded.as_deref().and_then(|id| self.index_of(id));
        let is_right = match parent {
            None => recorded.is_none() && object.has("parentId"),
            Some(parent) => recorded.as_deref() == Some(&*parent.id) && found == parent_index,
        };
        if !is_right {
            edits.set("parentId", parent.map_or("null".to_owned(), |p| quote(&p.id)));
        }
        if object.text("id").as_deref() != Some(&*entry.id) {
            edits.set("id", quote(&entry.id));
        }
        self.retarget(entry, &object, &mut edits);
        if entry.audience == Audience::Nobody && entry.is_compaction() {
            // The summary was forgotten; that there is one still counts.
            edits.set("summary", quote(""));
            edits.set("details", "null".to_owned());
        }
        if migrate {
            self.migrate(entry, &object, &mut edits);
        }
        Ok(edits.apply())
    }

    /// References to an entry that got a fresh id follow it.
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

    /// What version 3 says differently from 1 and 2.
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

    /// A document with every whole message and every other field.
    pub(crate) fn document_copy<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        let mut summaries = Vec::new();
        let mut messages = Vec::new();
        for entry in self.file_entries() {
            let list = match entry.recipe {
                Recipe::PonyBunnySummary => &mut summaries,
                _ => &mut messages,
            };
            list.push(self.text(entry)?);
        }
        if self.body.is_empty() && self.format != Format::PonyBunny {
            return line(out, &array(messages));
        }
        let mut body = Fresh::new();
        for (key, value) in &self.body {
            body = body.raw(key, value.as_str());
        }
        body = body.raw("messages", array(messages));
        if self.format == Format::PonyBunny {
            body = body.raw("compactedHistory", array(summaries));
        }
        line(out, &body.end())
    }
}

/// Changes of single values in the text of an object; everything else stays byte for byte.
pub(crate) struct Edits<'t> {
    text: &'t str,
    object: &'t Object<'t>,
    /// What stands at a place of the text is replaced by that.
    changes: Vec<(usize, usize, String)>,
    added: Vec<(&'static str, String)>,
}

impl<'t> Edits<'t> {
    pub(crate) fn new(text: &'t str, object: &'t Object<'t>) -> Self {
        Self { text, object, changes: Vec::new(), added: Vec::new() }
    }

    pub(crate) fn set(&mut self, key: &'static str, json: String) {
        match self.object.field(key) {
            Some(raw) => self.replace(raw.get(), json),
            None => self.added.push((key, json)),
        }
    }

    /// `part` is a slice of the text.
    fn replace(&mut self, part: &str, json: String) {
        let (from, to) = place_in(self.text, part);
        self.changes.push((from as usize, to as usize, json));
    }

    pub(crate) fn apply(mut self) -> String {
        if !self.added.is_empty() {
            let fields =
                self.added.iter().rev().map(|(key, json)| format!("{}:{json}", quote(key)));
            let fields = fields.collect::<Vec<_>>().join(",");
            // After `type`, which pi puts first; else right at the beginning.
            let change = match self.object.field("type") {
                Some(kind) => {
                    let (_, end) = place_in(self.text, kind.get());
                    (end as usize, end as usize, format!(",{fields}"))
                }
                None => {
                    let open = self.text.find('{').map_or(0, |at| at + 1);
                    let comma = if self.object.iter().next().is_some() { "," } else { "" };
                    (open, open, format!("{fields}{comma}"))
                }
            };
            self.changes.push(change);
        }
        self.changes.sort_by_key(|(from, ..)| *from);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (from, to, json) in self.changes {
            out.push_str(self.text.get(at..from).unwrap_or_default());
            out.push_str(&json);
            at = to;
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        out
    }
}

pub(crate) fn line<W: Write + ?Sized>(out: &mut W, text: &str) -> Result<()> {
    let text = text.trim();
    // A value may be laid out over several lines in a document; in JSONL it is one.
    let flat = || text.replace(['\n', '\r'], " ");
    let written = match text.contains(['\n', '\r']) {
        true => out.write_all(flat().as_bytes()),
        false => out.write_all(text.as_bytes()),
    };
    written.and_then(|()| out.write_all(b"\n")).map_err(write_error)
}

pub(crate) fn write_error(e: io::Error) -> Error {
    let hint = crate::disk::hint(e.kind()).unwrap_or("see where the copy is to go, and try again");
    Error::new(ErrorKind::Io, "cannot write the copy").source(e).hint(hint)
}

/// A time as pi writes it; the epoch where none is known.
pub(crate) fn iso(time: Option<ctx_core::Timestamp>) -> String {
    let epoch = |_| log::iso(ctx_core::Timestamp::default());
    log::iso(time.unwrap_or_default()).or_else(epoch).unwrap_or_default()
}
