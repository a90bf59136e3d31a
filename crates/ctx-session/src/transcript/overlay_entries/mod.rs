//! The entries of an overlay, as part of the tree.
//!
//! An overlay entry is a child of the entry that it names, and comes next on every branch through
//! that entry: the entries that follow in the file become children of the overlay entry. As in a
//! ctx session, the entries between root and leaf therefore apply, even if the file has grown
//! since, and a parent precedes its children.

mod attach;
mod lines;
mod resolve;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};

use crate::entry::TreeEntry;
use crate::formats;
use crate::read::Problems;
use crate::source::Source;
use crate::transcript::Transcript;

/// The overlay entries that a transcript was read with.
pub(crate) struct OverlayEntries {
    pub(crate) source: Arc<Source>,
    /// The entry of the file that each overlay entry is attached to.
    anchors: HashMap<u32, u32>,
}

impl Transcript {
    /// Adds the entries of the overlay at `path` to the tree.
    pub(crate) fn add_overlay_entries(&mut self, path: &Path) -> Result<()> {
        if self.overlay_entries.is_some() {
            return Ok(());
        }
        let source = match formats::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            opened => Arc::new(opened.map_err(|e| {
                Error::new(e.kind(), "cannot read the overlay")
                    .with("path", path.display())
                    .hint("check that another program can read the file")
                    .source(e)
            })?),
        };
        let mut problems = Problems::default();
        let lines = lines::read_lines(&source, &mut problems)?;
        let anchors = attach::attach(self, lines, &mut problems);
        self.overlay_entries = Some(OverlayEntries { source, anchors });
        self.problems.extend(problems.finish().0);
        Ok(())
    }

    /// Returns the source of an entry's bytes.
    pub(crate) fn source_of(&self, entry: &TreeEntry) -> &Arc<Source> {
        match &self.overlay_entries {
            Some(overlay) if entry.overlay => &overlay.source,
            _ => &self.source,
        }
    }

    /// Returns the entries of the file itself.
    pub(crate) fn file_entries(&self) -> impl Iterator<Item = &TreeEntry> {
        self.entries.iter().filter(|entry| !entry.overlay)
    }

    /// Returns the parent of an entry of the file, without the overlay's entries in between.
    pub(crate) fn file_parent(&self, entry: &TreeEntry) -> Option<usize> {
        let parent = entry.parent?;
        let anchor = self.overlay_entries.as_ref().and_then(|overlay| overlay.anchors.get(&parent));
        Some(*anchor.unwrap_or(&parent) as usize)
    }
}
