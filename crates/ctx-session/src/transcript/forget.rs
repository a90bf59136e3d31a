//! Messages of another program's file that ctx has forgotten. The file still contains them; the
//! overlay hides them.

use crate::entry::{Audience, MessageEncoding};
use crate::schema::Forgotten;
use crate::transcript::Transcript;

impl Transcript {
    /// Hides forgotten messages: to every use of the transcript, their entries have no message.
    pub(crate) fn forget(&mut self, forgotten: &[Forgotten]) {
        let mut heads = Vec::new();
        for one in forgotten {
            let Some(index) = self.index_of(&one.id) else { continue };
            if one.hash.is_some_and(|hash| self.first_line_hash(index) != Some(hash)) {
                continue;
            }
            let head = self.entries.get(index).and_then(|entry| entry.head);
            heads.push(head.map_or(index, |head| head as usize));
        }
        heads.sort_unstable();
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get_mut(index) else { continue };
            let head = entry.head.map_or(index, |head| head as usize);
            if heads.binary_search(&head).is_ok() && !entry.overlay {
                entry.encoding = MessageEncoding::Nothing;
                entry.audience = Audience::Nobody;
            }
        }
    }
}
