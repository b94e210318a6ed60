// SPDX-License-Identifier: Apache-2.0
extension String {
  /// The text for display and logs, at most 200 scalars: without line breaks and other control, format or ignorable
  /// characters.
  package var sanitized: String { sanitized(atMost: 200) }

  /// The text for display, shortened.
  /// - Parameters:
  ///   - limit: the maximum length in Unicode scalars.
  ///   - replacement: shown for each removed character.
  package func sanitized(atMost limit: Int, replacement: Unicode.Scalar? = nil) -> String {
    shown(atMost: limit) { $0.isDangerousToShow ? replacement : $0 }
  }

  /// The text for a new name, at most 200 scalars: `isSafeName`, unless it is empty.
  package var sanitizedName: String { shown(atMost: 200) { $0.isUnsafeInNames ? nil : $0 } }

  /// The text for display with its line feeds, shortened. Other control and format characters are removed.
  /// - Parameter limit: the maximum length in Unicode scalars.
  package func sanitizedText(atMost limit: Int) -> String {
    shown(atMost: limit) { $0 != "\n" && $0.isDangerousToShow ? nil : $0 }
  }

  private func shown(atMost limit: Int, as replaced: (Unicode.Scalar) -> Unicode.Scalar?) -> String {
    var shown = String.UnicodeScalarView()
    var count = 0
    // Bounds the scan: not more than 64 scalars per displayed scalar are read, even if all of them are removed.
    for scalar in unicodeScalars.prefix(64 * limit) {
      guard let scalar = replaced(scalar) else { continue }
      shown.append(scalar)
      count += 1
      if count > limit { break }
    }
    return String(shown).cut(atMost: limit)
  }

  /// Lines for a terminal or a log, each as in `sanitized` with at most 2000 scalars. Each removed character is shown
  /// as U+FFFD, so that two names do not look the same.
  package var sanitizedLines: String {
    split(separator: "\n", omittingEmptySubsequences: false).map {
      String($0).sanitized(atMost: 2000, replacement: "\u{FFFD}")
    }
    .joined(separator: "\n")
  }

  /// JSON in which control and format characters are escaped (RFC 8259 §7) and thus not interpreted by a terminal.
  package var escapedForDisplay: String {
    guard !isSafeToShow else { return self }
    return String.UnicodeScalarView(unicodeScalars).reduce(into: "") { escaped, scalar in
      guard scalar.isDangerousToShow else { return escaped.unicodeScalars.append(scalar) }
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
  }

  /// The text, shortened if necessary.
  /// - Parameter limit: the maximum length in Unicode scalars. A shortened text ends with "…".
  package func cut(atMost limit: Int) -> String {
    guard unicodeScalars.count > limit else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.prefix(limit - 1))) + "…"
  }

  /// Whether `sanitized` removes no character.
  package var isSafeToShow: Bool { !unicodeScalars.contains { $0.isDangerousToShow } }

  /// Whether it has no characters that are invisible or that `sanitized` removes, with which it could look like another
  /// name. A name that is stored already is not refused for them.
  package var isSafeName: Bool { !unicodeScalars.contains { $0.isUnsafeInNames } }

  package var hasControlCharacters: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}

extension Unicode.Scalar {
  fileprivate var isDangerousToShow: Bool {
    // Most text is ASCII; the category is looked up in a table.
    if (0x20...0x7E).contains(value) { return false }
    return switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
    // The selectors of plain and colored emoji are in ordinary texts.
    default: properties.isDefaultIgnorableCodePoint && value != 0xFE0E && value != 0xFE0F
    }
  }

  /// Whether it must not be shown, or is shown as nothing or, as the empty Braille pattern U+2800, as a blank.
  fileprivate var isUnsafeInNames: Bool {
    isDangerousToShow || (value > 0x7E && (properties.isDefaultIgnorableCodePoint || value == 0x2800))
  }
}
