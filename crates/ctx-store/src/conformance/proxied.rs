//! What the replicas of a proxy share.

use std::time::Duration;

use ctx_core::ErrorKind;

use super::{Case, Checked, ensure, failed, refused};
use crate::Blob;

impl Case<'_> {
    /// Conversations are extended at their known end, all or none.
    pub(super) async fn conversations(&self) -> Checked {
        let (id, store) = (format!("{}-a", self.agent), self.store);
        let lines =
            |all: &[&str]| all.iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>();
        for _ in 0..2 {
            let after =
                store.extend_conversation(&id, 0, &lines(&["one", "two"])).await.map_err(failed)?;
            ensure(after == 2, "the same extension at the same place has the same answer")?;
        }
        let after =
            store.extend_conversation(&id, 2, &lines(&["\u{e4}", ""])).await.map_err(failed)?;
        ensure(after == 4, "an extension returns the number of lines")?;
        for at in [0, 2, 3, 5] {
            let other = store.extend_conversation(&id, at, &lines(&["other"])).await;
            refused(other, ErrorKind::Conflict, "an extension elsewhere than at the end")?;
        }
        let read = store.read_conversation(&id, 1).await.map_err(failed)?;
        ensure(read == lines(&["two", "\u{e4}", ""]), "lines are read in order, from a number on")?;
        let listed = store.list_conversations(&self.agent).await.map_err(failed)?;
        ensure(
            listed == [(id.clone(), 4)],
            "conversations are listed by the beginning of their id",
        )?;
        store.expire_conversations(Duration::from_secs(3_600)).await.map_err(failed)?;
        ensure(
            store.read_conversation(&id, 3).await.map_err(failed)?.len() == 1,
            "a new conversation expired",
        )
    }

    /// Values are set, created once, read in part, and listed by name.
    pub(super) async fn blobs(&self) -> Checked {
        let (store, prefix) = (self.store, format!("{}/", self.agent));
        let blob = |name: &str, bytes: &[u8]| Blob {
            name: format!("{prefix}{name}"),
            bytes: bytes.to_vec(),
        };
        let all = [blob("b", b"0123456789"), blob("a", b""), blob("c", &[0, 255])];
        store.put_blobs(&all).await.map_err(failed)?;
        store.put_blobs(&[blob("a", b"later")]).await.map_err(failed)?;
        for (name, range, expected) in [
            ("a", 0..u64::MAX, Some(&b"later"[..])),
            ("b", 2..5, Some(b"234")),
            ("b", 8..100, Some(b"89")),
            ("b", 10..11, Some(b"")),
            ("c", 1..2, Some(&[255])),
            ("d", 0..1, None),
        ] {
            let read = store.get_blob(&blob(name, b"").name, range).await.map_err(failed)?;
            ensure(read.as_deref() == expected, "a value is read in part, as it was set last")?;
        }
        let first = store.create_blob(&blob("e", b"first")).await.map_err(failed)?;
        let second = store.create_blob(&blob("e", b"second")).await.map_err(failed)?;
        ensure(first == b"first" && second == b"first", "a value is created once")?;
        let listed = store.list_blobs(&prefix, 3).await.map_err(failed)?;
        let names = ["a", "b", "c"].map(|name| blob(name, b"").name);
        ensure(listed == names, "names are listed in order, up to a number")?;
        store.expire_blobs(&prefix, Duration::from_secs(3_600)).await.map_err(failed)?;
        ensure(
            store.list_blobs(&prefix, 10).await.map_err(failed)?.len() == 4,
            "a new value expired",
        )?;
        let gone = store.expire_blobs(&prefix, Duration::ZERO).await.map_err(failed)?;
        ensure(gone == 4, "an expiry returns the number of values")?;
        ensure(store.list_blobs(&prefix, 10).await.map_err(failed)?.is_empty(), "values expire")
    }
}
