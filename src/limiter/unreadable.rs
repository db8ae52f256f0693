/// The most fields counted one by one; the others are counted together.
const MAX_FIELDS: usize = 32;

/// How often the values of each header field could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    fields: Vec<(Box<str>, u64)>,
    others: u64,
}

impl Unreadable {
    /// Counts one more and returns how many there are of that field.
    pub(crate) fn count(&mut self, field: &str) -> u64 {
        if let Some((_, count)) = self.fields.iter_mut().find(|(known, _)| **known == *field) {
            *count += 1;
            return *count;
        }
        if self.fields.len() < MAX_FIELDS {
            self.fields.push((field.into(), 1));
            return 1;
        }
        self.others += 1;
        self.others
    }

    /// The fields and their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fields.iter().map(|(field, count)| (&**field, *count))
    }
}
