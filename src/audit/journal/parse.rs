//! The body of a line, read.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};

/// A body: the fields that all have, and the one that names its kind.
#[derive(Debug)]
pub(super) struct Parsed<V> {
    pub(super) n: u64,
    pub(super) at: Option<u64>,
    pub(super) wall: String,
    pub(super) limiter: Option<String>,
    pub(super) kind: String,
    pub(super) value: V,
}

/// No field may be there twice, and only one may be of another name: a reader that is less strict would see another line than we do.
impl<'de, V: Deserialize<'de>> Deserialize<'de> for Parsed<V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Fields(PhantomData))
    }
}

struct Fields<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Fields<V> {
    type Value = Parsed<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of a line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<V>, A::Error> {
        let (mut n, mut at, mut wall, mut limiter, mut kind) = (None, None, None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let twice = match key.as_str() {
                "n" => n.replace(map.next_value()?).is_some(),
                "at" => at.replace(map.next_value()?).is_some(),
                "wall" => wall.replace(map.next_value()?).is_some(),
                "limiter" => limiter.replace(map.next_value()?).is_some(),
                _ => kind.replace((key, map.next_value()?)).is_some(),
            };
            if twice {
                return Err(A::Error::custom("a field too many"));
            }
        }
        let (kind, value) = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
        Ok(Parsed {
            n: n.ok_or_else(|| A::Error::missing_field("n"))?,
            at,
            wall: wall.ok_or_else(|| A::Error::missing_field("wall"))?,
            limiter,
            kind,
            value,
        })
    }
}
