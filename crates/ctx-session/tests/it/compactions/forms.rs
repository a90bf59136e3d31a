//! Projections of kept messages that are stored with a compaction.

use ctx_core::{ContentHash, EntryId, Message, Projected, Projection, ProjectionKey, Role};
use ctx_session::{LogOptions, SessionLog, Transcript, save_projections};

use super::house::*;

fn form_of(transcript: &Transcript, id: &EntryId, text: &str) -> Projection {
    let message = transcript.main_line().unwrap();
    let message = message.iter().find(|item| item.entry.id() == id).unwrap().entry.message();
    let message = message.unwrap();
    Projection {
        key: ProjectionKey { entry: id.clone(), hash: ContentHash::of(&message) },
        layer: "t".into(),
        form: Projected::Replaced(std::sync::Arc::new(Message::text(Role::User, text))),
        reason: "short".into(),
        points_to: Vec::new(),
    }
}

#[test]
fn projections_apply_only_while_their_compaction_is_in_force() {
    for house in [House::ours(6), House::new(pi_tree().as_bytes())] {
        let transcript = house.open();
        let (first, second) = (kept(&transcript, 2), kept(&transcript, 1));
        let sent = form_of(&transcript, &first, "sent");
        let (own, double) =
            (form_of(&transcript, &first, "own"), form_of(&transcript, &second, "double"));
        save_projections(&house.home, &house.path, std::slice::from_ref(&sent)).unwrap();
        let mut with_forms = compacted("sum", &first);
        with_forms.projections = vec![own.clone(), double.clone()];
        let id = house.store(None, &with_forms).unwrap();
        // A projection of a compaction is also saved separately when the message is sent.
        let again = Projection { reason: "another".into(), ..double.clone() };
        save_projections(&house.home, &house.path, std::slice::from_ref(&again)).unwrap();
        let forms = || house.open().projections(None).unwrap();
        let in_force = [sent.clone(), own.clone(), double.clone(), again.clone()];
        assert_eq!(forms(), in_force);
        assert_eq!(house.open().messages_with_compactions(None).unwrap().trailing[0].1, with_forms);
        let undo = house.undo(Some(&id)).unwrap();
        assert_eq!(forms(), std::slice::from_ref(&sent));
        house.undo(Some(&undo)).unwrap();
        assert_eq!(forms(), in_force);
    }
}

#[test]
fn an_open_log_accepts_a_compaction_with_projections() {
    let house = House::ours(4);
    let mut with_forms = compacted("sum", &kept(&house.open(), 2));
    with_forms.projections = vec![form_of(&house.open(), &kept(&house.open(), 1), "short")];
    let mut log = SessionLog::open(&house.path, LogOptions::default()).unwrap();
    let id = log.append_compaction(&with_forms, NOW).unwrap();
    log.close().unwrap();
    let transcript = house.open();
    assert_eq!(texts(&transcript, None), ["sum", "m3", "m4"]);
    assert_eq!(
        transcript.messages_with_compactions(None).unwrap().trailing,
        [(id, with_forms.clone())]
    );
    assert_eq!(house.open().projections(None).unwrap(), with_forms.projections);
}
