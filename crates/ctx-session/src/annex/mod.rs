//! What an overlay adds, as part of the tree.
//!
//! An entry of the overlay hangs on the entry it names. On every branch that passes through that
//! one it comes next: what the file has after it hangs on the overlay's entry. So the branch rule
//! of a session of ours (what stands between root and leaf is in force) holds for both, also when
//! the file has grown meanwhile, and an entry's parent still stands before it.

mod hang;
mod read;
mod settle;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result};

use crate::entry::TreeEntry;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::source::{Source, is_transcript};
use crate::transcript::Transcript;

/// The overlay a transcript was read with.
pub(crate) struct Annex {
    pub(crate) source: Arc<Source>,
    /// The entry of the file that each of the overlay's hangs on in the end.
    anchors: HashMap<u32, u32>,
}

/// Opens a transcript together with what ctx keeps beside it: compactions, and what undoes them.
/// An overlay that cannot be read is a [`Problem`], as the transcript is readable without it.
///
/// # Errors
///
/// As [`Transcript::open`].
pub fn open(home: &Home, path: &Path) -> Result<Transcript> {
    let mut transcript = Transcript::open(path)?;
    // To find an overlay the file's beginning is read, which a pipe gives only once.
    if !is_transcript(path) {
        return Ok(transcript);
    }
    let overlay = Overlay::of(home, path)?;
    if let Err(error) = transcript.take_overlay(&overlay) {
        let mut problems = Problems::default();
        let text = format!("what ctx keeps beside the file is left out: {error}");
        problems.note(0, ProblemKind::DamagedOverlay, text);
        transcript.problems.extend(problems.finish().0);
    }
    Ok(transcript)
}

impl Transcript {
    /// Takes in what an overlay adds: its compactions, and what undoes them, become entries of the
    /// tree. An overlay that does not exist yet adds nothing; a second one is not taken in.
    ///
    /// What is damaged, or names what is not there, is left out and becomes a
    /// [`Problem`](crate::Problem).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if there is an overlay and it cannot be read.
    pub fn with_overlay(mut self, overlay: &Overlay) -> Result<Self> {
        self.take_overlay(overlay)?;
        Ok(self)
    }

    fn take_overlay(&mut self, overlay: &Overlay) -> Result<()> {
        if self.annex.is_some() {
            return Ok(());
        }
        let source = match Source::open(overlay.path()) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            opened => Arc::new(opened.map_err(|e| {
                Error::new(e.kind(), "cannot read the overlay")
                    .with("path", overlay.path().display())
                    .hint("check that another program can read the file")
                    .source(e)
            })?),
        };
        let mut problems = Problems::default();
        let lines = read::lines(&source, &mut problems)?;
        let anchors = hang::hang(self, lines, &mut problems);
        self.annex = Some(Annex { source, anchors });
        let found: Vec<Problem> = problems.finish().0;
        self.problems.extend(found);
        Ok(())
    }

    /// Where an entry's bytes are.
    pub(crate) fn source_of(&self, entry: &TreeEntry) -> &Arc<Source> {
        match &self.annex {
            Some(annex) if entry.overlay => &annex.source,
            _ => &self.source,
        }
    }

    /// The entries of the file itself.
    pub(crate) fn file_entries(&self) -> impl Iterator<Item = &TreeEntry> {
        self.entries.iter().filter(|entry| !entry.overlay)
    }

    /// The entry of the file that an entry of the file hangs on.
    pub(crate) fn file_parent(&self, entry: &TreeEntry) -> Option<usize> {
        let parent = entry.parent?;
        let anchor = self.annex.as_ref().and_then(|annex| annex.anchors.get(&parent));
        Some(*anchor.unwrap_or(&parent) as usize)
    }
}
