//! Constraints that were taken back, decisions that were reversed.

use std::collections::HashMap;

use super::passages::Passage;
use crate::FactKind;
use crate::text::{Gist, gist};

/// What is left of the weight of a passage that no longer holds.
const LEFT: f32 = 0.2;

/// Lowers the weight of what a later passage takes back. It does where both speak of the same and the
/// later one says so ("actually", "算了"), or negates what the earlier one affirms.
pub(super) fn lower_reversed(passages: &mut [Passage]) {
    let gists: Vec<Gist> = passages.iter().map(|passage| gist(&passage.text)).collect();
    // By word, the passages so far that say it. A word of many passages tells nothing about two.
    let mut sayers: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut lowered = vec![false; passages.len()];
    let mut raised = vec![false; passages.len()];
    for (later, passage) in passages.iter().enumerate() {
        let Some(own) = gists.get(later) else { continue };
        if !is_binding(passage.kind) {
            continue;
        }
        let earlier = own.words.iter().filter_map(|word| sayers.get(word));
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for &place in earlier.filter(|places| places.len() <= 40).flatten() {
            *shared.entry(place).or_default() += 1;
        }
        for (place, count) in shared {
            let (Some(old), Some(gist)) = (passages.get(place), gists.get(place)) else { continue };
            let close = count * 2 >= gist.words.len().min(own.words.len());
            let may = old.at < passage.at && (passage.by_user || old.kind == FactKind::Decision);
            let flips =
                own.words.iter().any(|&w| gist.says(w) && own.negates(w) != gist.negates(w));
            if may && close && (passage.revokes || (flips && count >= 1)) {
                lowered[place] = true;
                raised[later] |= old.kind != FactKind::Decision;
            }
        }
        for &word in &own.words {
            sayers.entry(word).or_default().push(later);
        }
    }
    for ((passage, lowered), raised) in passages.iter_mut().zip(lowered).zip(raised) {
        if lowered {
            passage.weight *= LEFT;
        }
        // What takes the place of a demand is one: "forget npm, switch to pnpm".
        if raised && passage.kind == FactKind::Decision {
            passage.kind = FactKind::Constraint;
        }
    }
}

fn is_binding(kind: FactKind) -> bool {
    matches!(kind, FactKind::Pinned | FactKind::Constraint | FactKind::Decision)
}
