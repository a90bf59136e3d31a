//! Long-term memory: searching, opening and building stores of up to millions of segments, and the
//! turns of a session that has one.

mod assemble;
mod corpus;
mod peers;
mod progress;
mod search;
mod store;
mod turn;

use std::path::Path;

use anyhow::Result;

use crate::Effort;
use crate::figure::Figure;

/// The sizes of the stores, in segments; all but the first only if `$CTX_LIMITS_LARGE` is 1, because the
/// large ones take an hour to build.
const SIZES: [usize; 3] = [20_000, 1_000_000, 3_000_000];

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let [usual, large @ ..] = SIZES;
    search::measure(effort, usual, print)?;
    {
        let temporary = store::temporary()?;
        let memory = turn::filled(temporary.path())?;
        let session = turn::session(memory.clone());
        assemble::measure(effort, &session, print)?;
        turn::measure(effort, &session, temporary.path(), print)?;
        // A thread may still write the index: it would create the folder again.
        memory.settle()?;
    }
    let large: &[usize] = if effort.is_large() { &large } else { &[] };
    large.iter().try_for_each(|count| search::measure(effort, *count, print))
}

/// Opens and searches the store in a folder, and prints what that took: in a process of its own,
/// whose memory is measured.
pub(crate) fn child(folder: &Path, with: &str) -> Result<()> {
    store::child(folder, with)
}
