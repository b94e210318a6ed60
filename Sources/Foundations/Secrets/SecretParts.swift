// SPDX-License-Identifier: Apache-2.0
/// An encoding of several secrets as one, so that a record with many fields is sealed, stored and replaced as a whole.
/// Each part follows its length in four bytes, big endian. No part is copied to ordinary memory.
extension SecretBytes {
  package static func joining(_ parts: [SecretBytes]) -> SecretBytes {
    SecretBytes(count: parts.reduce(0) { $0 + 4 + $1.count }) { (target: UnsafeMutableRawBufferPointer) in
      var offset = 0
      for part in parts {
        target.storeBytes(of: UInt32(part.count).bigEndian, toByteOffset: offset, as: UInt32.self)
        part.withExposedSecret { part in
          UnsafeMutableRawBufferPointer(rebasing: target[(offset + 4)..<(offset + 4 + part.count)]).copyMemory(
            from: part)
        }
        offset += 4 + part.count
      }
    }
  }

  /// Splits an encoding of `joining` into its parts; nil if the bytes are not such an encoding.
  package func parts() -> [SecretBytes]? {
    withExposedSecret { bytes in
      var parts: [SecretBytes] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        guard rest.count >= 4 else { return nil }
        let length = Int(
          UInt32(bigEndian: UnsafeRawBufferPointer(rebasing: rest.prefix(4)).loadUnaligned(as: UInt32.self)))
        rest = rest.dropFirst(4)
        guard rest.count >= length else { return nil }
        parts.append(SecretBytes(copying: rest.prefix(length)))
        rest = rest.dropFirst(length)
      }
      return parts
    }
  }
}

/// Texts that are not secret themselves, in the same encoding.
extension SecretBytes {
  package static func joining(_ texts: [String]) -> SecretBytes {
    joining(texts.map { SecretBytes(copying: Array($0.utf8)) })
  }

  /// The texts of `joining`; nil if the bytes are not such an encoding. Invalid UTF-8 is replaced.
  package func texts() -> [String]? {
    parts()?.map(\.publicText)
  }

  /// The text of bytes that are not secret but stored beside secrets. Invalid UTF-8 is replaced.
  package var publicText: String { withExposedSecret { String(decoding: $0, as: UTF8.self) } }
}
