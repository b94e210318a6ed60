extension String {
  /// What may be shown and logged: no line breaks, nothing that moves a cursor, not too much of it.
  public var forPeople: String { forPeople(atMost: 200) }

  /// - Parameter limit: Unicode scalars.
  public func forPeople(atMost limit: Int) -> String {
    var shown = String.UnicodeScalarView()
    var count = 0
    // No more is looked at than is shown, however long the text is; nothing but what is left out can follow for ever.
    for scalar in unicodeScalars.prefix(64 * limit) where !scalar.properties.isDangerousToShow {
      shown.append(scalar)
      count += 1
      if count > limit { break }
    }
    return String(shown).cut(atMost: limit)
  }

  /// Lines for a terminal or a log, each as `forPeople` has it.
  public var linesForPeople: String {
    split(separator: "\n", omittingEmptySubsequences: false).map { String($0).forPeople(atMost: 2000) }
      .joined(separator: "\n")
  }

  /// JSON whose texts neither move a cursor nor turn the direction of writing: such characters as escapes (RFC 8259 §7).
  public var escapedForPeople: String {
    guard unicodeScalars.contains(where: { $0.properties.isDangerousToShow }) else { return self }
    return String.UnicodeScalarView(unicodeScalars).reduce(into: "") { escaped, scalar in
      guard scalar.properties.isDangerousToShow else { return escaped.unicodeScalars.append(scalar) }
      for unit in String(scalar).utf16 {
        let digits = String(unit, radix: 16)
        escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      }
    }
  }

  /// - Parameter limit: Unicode scalars. The last of them is "…" if not all is there.
  public func cut(atMost limit: Int) -> String {
    guard unicodeScalars.count > limit else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.prefix(limit - 1))) + "…"
  }

  public var hasControlCharacters: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}

extension Unicode.Scalar.Properties {
  fileprivate var isDangerousToShow: Bool {
    switch generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned: true
    default: false
    }
  }
}
